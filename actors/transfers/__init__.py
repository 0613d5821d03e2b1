"""The transfers of input between machines: a network beside resource managers."""
