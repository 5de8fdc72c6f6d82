"""Application credentials: logins of programs, limited to the roles that you choose."""
