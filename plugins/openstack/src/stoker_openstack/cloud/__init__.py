"""The provider ``openstack``: servers, networks and volumes at an OpenStack cloud."""
