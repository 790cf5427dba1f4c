"""Levels and studies against each other: ratios of start means, noise floors, what differs besides what was asked."""
