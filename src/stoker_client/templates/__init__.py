"""Templates on the user's side: finding every file that a template and its environments need, as heatclient does."""
