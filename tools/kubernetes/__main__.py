"""`python -m tools.kubernetes` writes the alerts as an object of the Prometheus operator."""

from tools.kubernetes.rules import RULES, rendered

if __name__ == "__main__":
    RULES.write_text(rendered())
