"""Programs that check the emulator and share no code with it: rules of other simulators, stories, kills."""
