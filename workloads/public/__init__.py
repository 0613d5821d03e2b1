"""Public traces: which there are (`traces`), those in the user's data folder (`data_folder`), a file over HTTP."""
