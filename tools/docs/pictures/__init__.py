"""Pictures of the how-to pages, made from real stores."""
