"""What the hosts of partitions must know of each family of schedulers."""
