# Each target is the command of ./run by the same name.
.PHONY: serve test lint format check lock help
help serve test lint format check lock:
	@./run $@
.DEFAULT_GOAL := help
