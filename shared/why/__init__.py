"""Why a job has or has not fired: one sentence, then what happened to its id. `store` reads the facts, `explain` judges
them, and `timeline` tells the history line by line.
"""
