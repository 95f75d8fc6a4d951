// Package balancev1 is the balance coordinator's protocol: messages, client
// and handler, generated from balance.proto, which explains every field.
//
//	client := balancev1.NewBalanceServiceClient(http.DefaultClient, "http://127.0.0.1:7070")
//	answer, err := client.Open(ctx, &balancev1.OpenRequest{Job: "mnist", ...})
//
// `make proto` generates it anew; building needs no compiler of .proto files.
package balancev1
