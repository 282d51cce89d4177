"""What the files of an answer are called."""

COMPARISON, SUMMARY, REPORT = "comparison.json", "summary.md", "report.html"
