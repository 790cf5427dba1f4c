"""The wire: what the agent and every other engine say, as values. Beside `model`; sees nothing else of ours."""
