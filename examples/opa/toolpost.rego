package toolpost

default decision := {"decision": "ask", "reason": "the policy has no rule for this call"}

decision := {"decision": "deny", "reason": "pushes are frozen until the release"} if {
	startswith(input.arguments.command, "git push")
	data.freeze
}

decision := {"decision": "allow"} if {
	startswith(input.arguments.command, "git push")
	not data.freeze
}
