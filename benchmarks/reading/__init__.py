"""What the benchmarks about readers share."""
