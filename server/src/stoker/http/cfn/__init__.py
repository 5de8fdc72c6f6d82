"""Heat's CloudFormation API, which os-collect-config, heat-cfntools and pre-signed URLs use."""
