enum SystemdPlaceholder {}
