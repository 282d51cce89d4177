"""Prompts that the head is judged on: kinds of request and subjects of their own, never used in training."""

HELDOUT: dict[str, tuple[str, ...]] = {
    "explanation": (
        "Explain how a refrigerator keeps food cold.",
        "Why does bread rise when it is baked?",
        "How does a vending machine know which coin I put in?",
        "What makes a boomerang come back?",
        "Explain what a black box in an aeroplane records.",
        "Why do leaves change colour in autumn?",
        "How do noise-cancelling headphones work?",
        "Explain the difference between weather and climate in plain words.",
    ),
    "code": (
        "Write a JavaScript function that checks whether a word is a palindrome.",
        "Show me a bash script that renames all .txt files in a folder to .md.",
        "Write a Java class for a bank account with deposit and withdraw methods.",
        "How do I reverse a list in Python without using reverse()?",
        "Write an HTML page with a form that has two fields and a button.",
        "Write a C function that returns the largest element of an array.",
        "Write a Python script that counts how often each word appears in a file.",
        "Give me a CSS rule that centres a box on the page, and explain it.",
    ),
    "story": (
        "Tell a bedtime story about a snail who wants to win a race.",
        "Write a scene in which two strangers share a taxi during a storm.",
        "Write the opening paragraph of a mystery set in a bakery.",
        "Invent a legend that explains why the sea is blue.",
        "Write a story of a violin that is passed through four generations.",
        "Describe the last day of summer from the view of a scarecrow.",
        "Write a short fable with a crow, a fox and a broken mirror.",
        "Write a letter from a sailor to his sister after a long voyage.",
    ),
    "list": (
        "Give me eight names for a pet tortoise.",
        "List the things to pack for a week on a farm.",
        "What are the ingredients of a Greek salad?",
        "List seven ways to save water at home.",
        "Name six musical instruments that are played with a bow or a stick.",
        "Give ten ideas for a rainy afternoon with children.",
        "What should be on the checklist before a flat inspection?",
        "List five questions that a landlord might ask a tenant.",
    ),
    "summary": (
        "Summarise: The tram line opened in 1907 and was closed fifty years later, when buses became cheaper. In 1998 the city "
        "rebuilt it along the river. Today thirty thousand people use it every day, and a second line is planned.",
        "Give the gist of this note: The kitchen will be closed on Thursday for repairs. Staff can use the small room on the "
        "second floor. Please label your food and take everything home on Wednesday evening.",
        "In one sentence: Maria planted tomatoes too early, a night of frost killed them, and she bought new plants in May.",
        "Shorten this to a headline: Researchers found that goats can tell happy and angry human voices apart, according to a "
        "study in which goats looked longer at a loudspeaker when the mood of the voice changed.",
        "What is the main claim here? Small shops close because customers order online, the council says; shop owners blame the "
        "parking fees, which doubled in two years.",
        "Summarise the rules: Players draw five cards. The highest heart starts. Each player must follow suit if possible. The "
        "winner of a trick leads the next one. The game ends at fifty points.",
        "Sum up for a busy reader: The bridge will be painted from June to August. One lane stays open. Cyclists must use the "
        "ferry, which runs every twenty minutes and is free of charge.",
        "Make a summary of two sentences: The old mill has a wheel of oak. It ground flour for the village until 1950. A club of "
        "volunteers repaired the roof, and since last year it is a museum that opens on Sundays.",
    ),
    "email": (
        "Write an email to a hotel asking to change my booking to two nights later.",
        "Write a complaint to a furniture shop about a table with a scratched top.",
        "Write a thank-you note to a teacher at the end of the year.",
        "Invite your neighbours to a barbecue on Saturday, in a short message.",
        "Write a message that declines a dinner invitation kindly.",
        "Ask a supplier for a quote for two hundred paper cups.",
        "Write an out-of-office reply for a week in October.",
        "Write a note to a tenant about the yearly smoke alarm test.",
    ),
    "reasoning": (
        "A train leaves at 9:40 and arrives at 12:05. How long is the trip?",
        "If three pens cost 4.50, what do seven pens cost?",
        "I have twelve eggs, use five for a cake and drop two. How many are left?",
        "Which is heavier, a kilogram of feathers or a pound of iron? Explain.",
        "A rectangle has sides of 6 and 9 metres. What are its area and perimeter?",
        "Tom is older than Ann, and Ann is older than Bea. Who is the youngest?",
        "A jar has 3 red and 5 green sweets. What is the chance to draw a red one?",
        "A recipe for four needs 300 g of rice. How much do I need for ten?",
    ),
    "rewriting": (
        "Put this into the past tense: The boy runs to the gate and calls his friend.",
        "Make this sound more formal: Hey, can you send me that stuff by tomorrow?",
        "Translate to Spanish: The library is closed on Mondays, but the café is open.",
        "Find the spelling mistakes: Their are to many peple in the resturant tonight.",
        "Rewrite as a question: The museum offers a discount for students.",
        "Say this in simpler words: The precipitation is anticipated to commence imminently.",
        "Change the point of view to the first person: She packed her bag and left before dawn.",
        "Turn into a tweet: Our bakery now opens at six in the morning and has free coffee for early guests.",
    ),
}
