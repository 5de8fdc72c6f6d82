"""
A Swift and a Zaqar in place of the embedded object store and messaging service.

A transaction only writes down what is to be there (``store.lodgings``) and defers a job; the job brings it there, again
and again until it succeeds. Results are looked for by jobs too, as long as a run waits for one.
"""
