"""Lease records: who holds which nodes until when, so that leftovers of a dead conductor are found."""
