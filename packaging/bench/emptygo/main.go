// Command emptygo does nothing: what any static Go program costs at least, for hook.sh to measure assay-hook against.
package main

func main() {}
