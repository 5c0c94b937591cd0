"""How each command's answer is shaped for people and for programs: a module for each command."""
