package main

import "github.com/spf13/cobra"

func serveCommand() *cobra.Command {
	return group("serve", "Answer over the network", serveBalanceCommand())
}
