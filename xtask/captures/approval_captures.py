def capture(group):
    pass
