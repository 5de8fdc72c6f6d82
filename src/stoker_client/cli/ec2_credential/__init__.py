"""EC2 credentials: keys to sign requests to CloudFormation's API with."""
