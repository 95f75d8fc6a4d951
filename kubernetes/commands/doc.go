// Package commands tries the commands of cotenant that read a cluster, `explain`,
// `report` and `plan --cluster`, on a real control plane with our scheduler in
// charge. It holds only tests:
//
//	make kubernetes-build
//	cd kubernetes && go test ./commands -v
package commands
