"""What waits for a person's yes: questions about calls, and who answered them."""
