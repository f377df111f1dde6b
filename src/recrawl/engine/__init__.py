"""The same kernels on a cluster: a history bucket by bucket, on an engine that speaks Spark."""
