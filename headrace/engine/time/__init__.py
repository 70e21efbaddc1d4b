"""Markers: read, written, and learnt from what stands still or comes late."""
