"""CloudFormation's syntax of templates."""
