"""The configuration of an emulation: its keys, the layers of their values, and the plan that they become."""
