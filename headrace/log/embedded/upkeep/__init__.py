"""What is done to segments after they are written: retention, compaction, verification."""
