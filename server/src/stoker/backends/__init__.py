"""
External services: a Swift or Zaqar in place of the embedded services, users at a Keystone, and other Heats.

A transaction records the desired state (``store.remote_objects``, ``store.stack_users``) and defers a job. The
reconciler applies the state through the controller of its kind, and retries until it succeeds. Other jobs poll for
results while runs wait for them.
"""
