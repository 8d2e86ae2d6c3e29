"""What operators do to a service's store from the command line, by the parts the service itself is made of."""
