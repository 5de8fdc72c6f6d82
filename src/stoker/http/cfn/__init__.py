"""Heat's CloudFormation API: what os-collect-config, heat-cfntools and pre-signed URLs speak."""
