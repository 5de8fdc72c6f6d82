"""
Drivers for an external Swift or Zaqar that replaces the embedded object store or messaging service.

A transaction records the desired state (``store.remote_objects``) and defers a job. The job applies the state, and
retries until it succeeds. Other jobs poll for results while runs wait for them.
"""
