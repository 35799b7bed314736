return text(now)
