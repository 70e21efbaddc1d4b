"""Groups and queues of the log on Kafka. It needs the package confluent-kafka."""
