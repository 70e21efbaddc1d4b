"""Groups and queues of the embedded log: one file that all processes of the machine share."""
