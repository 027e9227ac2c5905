"""Chat templates in the styles of published models, written for these tests."""

CHATML = """
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

# The same, in a style that relies on the line ends that Jinja removes after blocks, and on the spaces before them.
CHATML_IN_LINES = """{% for message in messages %}
    {% if true %}
<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
    {% endif %}
{% endfor %}
{% if add_generation_prompt %}
<|im_start|>assistant
{% endif %}
"""

# The template writes the text of the BOS token, strips contents, and writes the date, like that of Llama 3.
LLAMA3 = """
{{- bos_token }}
{%- set date_string = strftime_now("%d %b %Y") %}
{%- if messages[0].role == 'system' %}
    {%- set system = messages[0].content | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system = '' %}
{%- endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\nToday is ' + date_string + '\\n\\n' + system + '<|eot_id|>' }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' + message.content | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

# Without a role for the system and without a beginning of the answer, like that of Mistral.
INST = """
{{- bos_token }}
{%- for message in messages %}
    {%- if message.role == 'user' %}
        {{- '[INST] ' + message.content + ' [/INST]' }}
    {%- elif message.role == 'assistant' %}
        {{- ' ' + message.content + eos_token }}
    {%- else %}
        {{- raise_exception('only user and assistant') }}
    {%- endif %}
{%- endfor %}
"""

GENERATION = """
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.role == 'assistant' %}
        {%- generation %}
            {{- message.content + '<|im_end|>' }}
        {%- endgeneration %}
        {{- '\\n' }}
    {%- else %}
        {{- message.content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

WITHOUT_HEADERS = """
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {%- generation %}{{ message.content + '<|im_end|>' }}{% endgeneration %}
    {%- else %}
        {{- message.content + '<|im_end|>' }}
    {%- endif %}
{%- endfor %}
"""

# The answer begins where the prompt ends, like that of Mistral.
GENERATION_AFTER_INST = INST.replace(
    "{{- ' ' + message.content + eos_token }}", "{%- generation %}{{ ' ' + message.content + eos_token }}{% endgeneration %}"
)

# The last answer has its reasoning, and earlier ones lose it, like those of Qwen 3.
REASONING = """
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {%- set parts = message.content.split('</think>') %}
        {%- set answer = parts[-1].lstrip('\\n') %}
        {%- set thought = parts[0].split('<think>')[-1].strip('\\n') if parts | length > 1 else '' %}
        {{- '<|im_start|>assistant\\n' }}
        {%- if loop.last %}
            {{- '<think>\\n' + thought + '\\n</think>\\n\\n' }}
        {%- endif %}
        {{- answer + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

# The beginning of the answer has <think>, which the answer itself loses.
OPENS_A_THOUGHT = CHATML.replace("'<|im_start|>assistant\\n'", "'<|im_start|>assistant\\n<think>\\n'")

# The header of an answer cannot be told from its text.
ASKS_FOR_NOTHING = CHATML[: CHATML.index("{%- if add")]

# The answer begins within a token: the space of the beginning belongs to its first word.
ENDS_WITH_A_SPACE = CHATML.replace("message.role + '\\n'", "message.role + ': '").replace("assistant\\n", "assistant: ")

WITHOUT_SYSTEM = CHATML.replace(
    "{{- '<|im_start|>' +", "{%- if message.role == 'system' %}{% continue %}{% endif %}{{- '<|im_start|>' +"
)

TOOLS = CHATML.replace(
    "message.content + '<|im_end|>",
    "message.content + (message.tool_calls | tojson if message.tool_calls else '') + '<|im_end|>",
).replace("\n{%- for", "\n{{- tools | tojson if tools else '' }}\n{%- for", 1)

MARKS_EVERYTHING = "{% generation %}" + CHATML + "{% endgeneration %}"
CHANGES_ITS_BLOCKS = "{% set all %}" + GENERATION + "{% endset %}{{ all | replace('<|im_end|>', '') | upper | reverse }}"
