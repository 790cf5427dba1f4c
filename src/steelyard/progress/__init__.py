"""What a study in progress says of itself: events, the state that they fold to, and the file that readers watch."""
