// Package image makes the container image of a static program, without a
// container runtime: one layer with the program, and nothing else.
//
//	img, err := image.New(image.Spec{Program: "bin/cotenant-scheduler", Version: "0.1.0"})
//	if err != nil { ... }
//	err = image.Write(file, img, "cotenant-scheduler:0.1.0")
//
// The same program gives the same bytes: times are fixed, files are in order.
//
// The tarball is an OCI image layout (oci-layout, index.json, blobs/) that
// has a manifest.json, too, the index of `docker save`, over the same blobs.
// So all that load images from files load it: containerd (ctr, kind, k3s) and
// podman by the layout; docker by either, where its releases before 25 know
// manifest.json alone.
package image
