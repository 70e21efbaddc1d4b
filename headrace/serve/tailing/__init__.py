"""Records of topics for readers: pages of them, and following a topic as it grows."""
