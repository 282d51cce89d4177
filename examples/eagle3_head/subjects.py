"""What the training prompts talk about: subjects, openers and tasks.

The benchmark's own prompts are none of these: the head must be judged on subjects and kinds of request
that it was not trained on. `evaluate.py` checks that no held-out prompt stands in the training set.
"""

SUBJECTS: tuple[str, ...] = tuple(
    """osmosis|plate tectonics|merge sort|the Roman Empire|making cheese|HTTP cookies|inflation|earthquakes|the space shuttle
car engines|antibiotics|blues music|memory paging|the spice trade|neutron stars|wind power|poker odds|digital signatures
keeping chickens|deserts|rainbows|magnets|recycling|graph search|the Industrial Revolution|pasta|DNS|mortgages|hurricanes
Mars rovers|solar panels|the immune system|jazz drumming|hash tables|the Vikings|supernovas|batteries|checkers|passwords
gardening|rivers|sleep|coffee|linear regression|ancient Egypt|pizza dough|routers|taxes|tornadoes|satellites|bridges|genetics
choirs|queues|the Renaissance|comets|nuclear fission|go strategy|firewalls|composting|forests|exercise|tea|neural networks
medieval castles|soup|load balancing|savings accounts|tsunamis|telescopes|elevators|bacteria|opera|linked lists|the Cold War
galaxies|hydrogen fuel|card games|backups|orchards|remote work|a lost dog|a lighthouse keeper|time zones|public libraries
electric cars|wedding speeches|job interviews|renting a flat|learning to swim|first aid|whales|honey|the alphabet|fractions
prime numbers|photosynthesis in algae|the nervous system|friendship|stage fright|procrastination|a dragon who bakes|robots
a detective in Paris|a haunted school|a trip to the moon|the stock market|insurance|marketing a small shop|customer complaints
team meetings|project deadlines|unit tests|regular expressions|database indexes|binary trees|string reversal|sorting a list
reading a CSV file|a to-do app|a web scraper|matrix multiplication|recursion|git branches|Docker images|REST APIs|SQL joins
climate change|overfishing|rainforests|coral reefs|penguins|elephants|bees|migratory birds|volcanic islands|caves|snow|fog
the printing press|the telegraph|steam ships|railways|aqueducts|cathedrals|pyramids|the Silk weavers|samurai|the Aztecs
the Constitution|elections|human rights|juries|patents|copyright|privacy|advertising|news reporting|photography|painting
sculpture|ballet|poetry|haiku|novels|short stories|screenplays|comics|video games|chess clocks|marathons|football|tennis|yoga
meditation|healthy breakfasts|vegetarian cooking|curry|chocolate|ice cream|bread rolls|kitchen knives|grocery budgets
family holidays|camping|hiking boots|city cycling|airports|trains in Japan|Iceland|Brazil|Kenya|the Alps|Venice|New York
grandparents|teenagers|babies|pet cats|a shy student|a stubborn neighbour|a broken phone|a late delivery|a birthday party
dinosaurs|fossils|the atom|gravity|light|sound waves|friction|heat pumps|chemical bonds|acids|vitamins|the heart|lungs|teeth
eyesight|hearing|allergies|the common cold|hand washing|sunscreen|stress|anger|kindness|honesty|courage|gratitude|leadership
negotiation|public speaking|note taking|memory tricks|speed reading|foreign languages|essay writing|cover letters|e-mail style
probability|averages|percentages|triangles|circles|calculus|vectors|logic puzzles|riddles|crosswords|magic tricks|origami
knitting|woodwork|house paint|leaking taps|light bulbs|smart homes|mobile phones|search engines|e-books|podcasts|radio|maps
compass navigation|sailing|submarines|helicopters|rockets|the International Space Station|Jupiter|eclipses|the calendar
tides|salt|gold|diamonds|glass|paper|plastic|cotton|wool|leather shoes|perfume|soap|candles|clocks|umbrellas|bicycles""".replace(
        "\n", "|"
    ).split("|")
)

OPENERS: tuple[str, ...] = tuple(
    """What is|What are|Why do|Why is|How do I|How does|How can|Can you|Could you|Please|I need|I want to|I am|I have|My|The|In
Write a|Write an|Create a|Make a list of|List|Give me|Explain|Describe|Summarize|Compare|Translate|Rewrite|Imagine|Tell me
Who was|When did|Where can|Which|Is it|Are there|Should I|Help me|Generate|Design|Develop|Calculate|Solve|Find|Convert|Fix
Write a Python function|Write a SQL query|Write a story about|Write an email|Write a poem|Here is|Given|Using|As a|Suppose
Read the following|You are|Dear|Hello|Edit|Classify|Identify|Provide|Suggest|Analyze|Discuss|Outline|Complete|Correct""".replace(
        "\n", "|"
    ).split("|")
)

TASKS: tuple[str, ...] = (
    "Explain {s} to a child of ten.",
    "Write a Python function that has to do with {s}, and explain it.",
    "Give me five facts about {s}.",
    "What are three common mistakes with {s}?",
    "Write a short story about {s}.",
    "Write a poem about {s} with four verses.",
    "Draft a polite email to a colleague about {s}.",
    "Make a plan for a one-hour lesson on {s}.",
    "What are the advantages and disadvantages of {s}?",
    "How did {s} change over the last hundred years?",
    "Describe {s} step by step.",
    "Write a dialogue between two friends about {s}.",
    "I know nothing about {s}. Where should I start?",
    "Make a table with facts about {s}.",
    "Write ten quiz questions about {s} with answers.",
    "Why does {s} matter to ordinary people?",
    "Write a product description that mentions {s}.",
    "Write a speech of two minutes on {s}.",
    "Compare {s} with {t}.",
    "What do {s} and {t} have in common?",
    "Tell me a joke about {s}, then explain why it is funny.",
    "Write a JSON object that describes {s}.",
    "Define {s} in one sentence, then in one paragraph.",
    "Which books or films about {s} should I know?",
    "Write a news article about {s} and {t}.",
    "List ten words that go with {s}.",
    "Write a review of a museum about {s}.",
    "What would the world be like without {s}?",
    "Write a checklist for somebody who works with {s}.",
    "Argue for and against this: everybody should learn about {s}.",
)

PASSAGE_TASKS: tuple[str, ...] = (
    "Summarize the following text in two sentences.\n\n{p}",
    "Rewrite this in a friendlier tone:\n\n{p}",
    "{p}\n\nWhat are the main points of this text?",
    "Continue the text:\n\n{p}",
    "Translate to French: {p}",
    "Correct the grammar and repeat the text:\n{p}",
    "Read the passage and answer: what is it about, and who would want to read it?\n\n{p}",
    "Turn this into a bulleted list.\n\n{p}",
    "Extract the nouns from this text: {p}",
    "{p}\n\nDo you agree? Explain your answer.",
    "Make this shorter: {p}",
    "Write three questions that a reader of this text might ask.\n\n{p}",
)
