return (fields_of(KEYS[1])) or false
