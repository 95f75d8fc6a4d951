// Command ablation trains the policy harmony again and again, each time
// without one of its parts, and prints what each part is worth.
//
//	go run ./scenarios/ablation                        # what is missing in results.jsonl, then the table
//	go run ./scenarios/ablation -seeds 0-4 -only full,forget
//	go run ./scenarios/ablation -updates 60 -out /tmp/longer.jsonl
//	go run ./scenarios/ablation -only none             # the table alone
//
// Every variant is trained from scratch for as many updates and episodes, in
// the world that it believes, and is judged in the true one (sim/contention, 6
// servers) on streams of jobs that no training sees. A run that is done is a
// line of the results and is not done again; one that is interrupted is lost,
// alone. Two processes may share the results, given different seeds.
package main
