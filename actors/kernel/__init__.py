"""The compiled core: messages and their queue, counter-based random numbers, the state of a partition."""
