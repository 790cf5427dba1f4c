"""Leases on record: who holds which nodes until when, so that what a dead conductor left behind is found."""
