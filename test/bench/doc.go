// Command bench measures nodeactor beside the upstream control plane, in one run and in turns, and prints one Markdown table.
//
// It is started by run.sh, which builds what it needs. The load comes from the benchmark kit (BENCH_KIT), which knows either side only
// by its kubeconfig; this program starts and stops the sides, watches their processes through /proc, adds the measures the kit does not
// have (start of the node, idleness, pod start, size of the programs, memory and a restart with many objects), and compares medians over the rounds.
//
// Everything it starts it ends by process id, and it removes the directories it made, also after a signal.
package main
