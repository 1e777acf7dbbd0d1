package toolpost

import rego.v1

default decision := {"decision": "ask", "reason": "the policy has no rule for this call"}

# The host has parsed the command. `input.rules` lists the matching rules, wherever the push stands in the text.
is_push if "delegate opa shell(git push *)" in input.rules

decision := {"decision": "deny", "reason": "pushes are frozen until the release"} if {
	is_push
	data.freeze
}

decision := {"decision": "allow"} if {
	is_push
	not data.freeze
}
