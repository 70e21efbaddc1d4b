"""The command line. Commands load what they need when they run, so that small ones start fast."""
