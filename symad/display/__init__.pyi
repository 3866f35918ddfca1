from symad.display import html as html, latex as latex, notebook as notebook, terminal as terminal
