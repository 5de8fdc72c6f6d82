"""The heart: configs and deployments, what a server has to run, and what its reports mean."""
